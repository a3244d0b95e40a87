# Installs promptshelf for one user, without administrator rights:
#
#   irm https://github.com/promptshelf/promptshelf/releases/latest/download/install.ps1 | iex
#
# PROMPTSHELF_VERSION   the version [default: the latest]
# PROMPTSHELF_BIN       the folder of the program [default: %LOCALAPPDATA%\promptshelf\bin]
# PROMPTSHELF_RELEASES  the base address of releases: ADDRESS/vVERSION/FILE, and ADDRESS/latest with the latest version

# A download that ends early has no call of it, and does nothing.
function Install-Promptshelf {
    $ErrorActionPreference = 'Stop'
    # Without it, Windows PowerShell spends most of the time on a progress bar.
    $ProgressPreference = 'SilentlyContinue'
    $network = 'check the network, and the variable HTTPS_PROXY if there is a proxy'

    function Get-Release([string] $Address, [string] $File) {
        try {
            Invoke-WebRequest -UseBasicParsing -Uri $Address -OutFile $File
        } catch {
            throw "$Address cannot be read: $($_.Exception.Message). Help: $network"
        }
    }

    $architecture = if ($env:PROCESSOR_ARCHITEW6432) { $env:PROCESSOR_ARCHITEW6432 } else { $env:PROCESSOR_ARCHITECTURE }
    # Windows on ARM runs programs for x86-64.
    if ($architecture -notin 'AMD64', 'ARM64') {
        throw "there is no program for Windows on $architecture"
    }
    $target = 'x86_64-pc-windows-gnu'
    $bin = if ($env:PROMPTSHELF_BIN) { $env:PROMPTSHELF_BIN } else { Join-Path $env:LOCALAPPDATA 'promptshelf\bin' }
    $version = "$env:PROMPTSHELF_VERSION".TrimStart('v')
    $pages = 'https://github.com/promptshelf/promptshelf/releases'
    # Next to the program, so that the last step replaces it at once.
    $work = Join-Path $bin ".promptshelf-$([guid]::NewGuid())"
    try {
        New-Item -ItemType Directory -Force -Path $work | Out-Null
    } catch {
        throw "the folder $bin cannot be written to. Help: set PROMPTSHELF_BIN to a folder that you may write to"
    }
    try {
        if ($env:PROMPTSHELF_RELEASES) {
            $releases = $env:PROMPTSHELF_RELEASES.TrimEnd('/')
            if (-not $version) {
                Get-Release "$releases/latest" "$work\latest"
                $version = (Get-Content -Raw "$work\latest").Trim().TrimStart('v')
            }
            $files = "$releases/v$version"
        } elseif ($version) {
            $files = "$pages/download/v$version"
        } else {
            # The sums of the latest release name its files, and so its version.
            $files = "$pages/latest/download"
        }
        Get-Release "$files/SHA256SUMS" "$work\sums"
        $named = if ($version) { [regex]::Escape($version) } else { '[0-9][^/]*' }
        $line = Select-String -Path "$work\sums" -Pattern "^([0-9a-f]{64})  (?:.*/)?(promptshelf-$named-$target\.zip)$" |
            Select-Object -First 1
        if (-not $line) {
            throw "$files/SHA256SUMS has no file for $target. Help: choose another version with PROMPTSHELF_VERSION"
        }
        $expected = $line.Matches[0].Groups[1].Value
        $file = $line.Matches[0].Groups[2].Value
        Get-Release "$files/$file" "$work\$file"
        if ((Get-FileHash -Algorithm SHA256 "$work\$file").Hash.ToLowerInvariant() -ne $expected) {
            throw "the archive $file does not have the expected SHA-256 sum, so nothing was installed. Help: start again"
        }
        Expand-Archive -Path "$work\$file" -DestinationPath $work
        $program = Join-Path $work ($file -replace '\.zip$', '\promptshelf.exe')
        $printed = & $program --version
        if ($LASTEXITCODE -ne 0) { throw "the program does not run on this machine: $printed" }
        try {
            Move-Item -Force $program (Join-Path $bin 'promptshelf.exe')
        } catch {
            throw "$bin\promptshelf.exe cannot be replaced. Help: end every promptshelf that runs, and start again"
        }
    } finally {
        Remove-Item -Recurse -Force -ErrorAction SilentlyContinue $work
    }
    Write-Output "$printed is installed: $bin\promptshelf.exe"
    $path = [Environment]::GetEnvironmentVariable('Path', 'User')
    if (";$path;" -notlike "*;$bin;*") {
        [Environment]::SetEnvironmentVariable('Path', "$bin;$path", 'User')
        Write-Output "The folder was added to your PATH; new windows find ``promptshelf`` there."
    }
    Write-Output 'next: promptshelf init my-prompts'
}

try {
    Install-Promptshelf
} catch {
    [Console]::Error.WriteLine("error: $($_.Exception.Message)")
    # `exit` would close the window of somebody who pasted the line.
    if ($MyInvocation.MyCommand.Path) { exit 1 }
}
