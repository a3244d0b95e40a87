//! Skills over MCP (extension `io.modelcontextprotocol/skills`, SEP-2640): list, get and folders. Their files are
//! resources.
//!
//! The extension is specified for revision 2026-07-28. Older clients that know it get the same results without the
//! members that their revision lacks.

use promptshelf_service::Rejection;

use crate::{Server, dispatch::Context, error_code::WireError, request::Params, to_wire};

impl Server {
    pub(crate) fn list_skills(
        &self,
        context: Context<'_>,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let cursor = params.cursor()?;
        let page = self
            .service()
            .list_skills(context.caller, cursor.as_deref())
            .map_err(|rejection| WireError::rejected(&rejection, context.revision))?;
        to_wire::skills::list(&page, context.revision, out);
        Ok(())
    }

    pub(crate) fn get_skill(
        &self,
        context: Context<'_>,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let uri = params.uri()?;
        let skill = self.service().skill(context.caller, &uri).map_err(|rejection| match rejection {
            // The same code in every revision.
            Rejection::UnknownResource { uri } => WireError::invalid_params(format!("No skill is served at {uri}")),
            other => WireError::rejected(&other, context.revision),
        })?;
        to_wire::skills::one(&skill, context.revision, out);
        Ok(())
    }

    pub(crate) fn read_folder(
        &self,
        context: Context<'_>,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let (uri, cursor) = (params.uri()?, params.cursor()?);
        let page =
            self.service().skill_folder(context.caller, &uri, cursor.as_deref()).map_err(
                |rejection| match rejection {
                    Rejection::UnknownResource { uri } => {
                        WireError::invalid_params(format!("{uri} is not a folder that is served"))
                    }
                    other => WireError::rejected(&other, context.revision),
                },
            )?;
        to_wire::skills::folder(&page, context.revision, out);
        Ok(())
    }
}
