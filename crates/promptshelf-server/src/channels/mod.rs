//! Channels of a store: following them.
//!
//! [`Follower`] keeps a library equal to the newest revision of a channel. Requests are answered from memory only; the
//! store is read by the follower alone.

mod cache;
mod copy;
mod follower;
mod store_handle;

pub use self::{
    follower::{FollowError, FollowOptions, Follower},
    store_handle::StoreHandle,
};
