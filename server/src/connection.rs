//! A connection as the replica knows it, whatever carries it (a WebSocket or an event stream). However its owner
//! ends, by return, cancellation or panic, the replica and the hub forget the connection.

use crate::hub::Registration;
use std::sync::Arc;
use tidegate_replica::{drain::ConnId, handle::Replica};

/// See the module's description.
pub struct Connected {
    replica: Replica,
    /// Present until the connection is given up.
    registration: Option<Registration>,
    announced: bool,
}

impl Connected {
    /// A registered connection that the replica has not heard of.
    #[must_use]
    pub fn new(replica: Replica, registration: Registration) -> Self {
        Self { replica, registration: Some(registration), announced: false }
    }

    /// The client has told its name.
    pub fn set_client_id(&self, client_id: Arc<str>) {
        if let Some(registration) = &self.registration {
            registration.set_client_id(client_id);
        }
    }

    /// Tells the replica of the connection.
    pub async fn announce(&mut self) {
        self.announced = true;
        self.replica.connect(self.conn()).await;
    }

    /// The connection's id.
    ///
    /// # Panics
    /// Never: the registration is taken only by `drop`.
    #[must_use]
    pub fn conn(&self) -> ConnId {
        self.registration.as_ref().expect("registered until dropped").conn
    }

    /// The replica.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let Some(registration) = self.registration.take() else { return };
        // Without a runtime the process is ending, and the replica with it.
        if self.announced
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let replica = self.replica.clone();
            runtime.spawn(async move {
                replica.disconnect(registration.conn).await;
                drop(registration);
            });
        }
    }
}
