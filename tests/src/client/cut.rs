//! A way to a server on which connections are cut by hand.

use std::net::SocketAddr;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on, both ways, until it is told to cut.
pub(super) struct Wire {
    pub(super) address: SocketAddr,
    cuts: watch::Sender<u64>,
}

impl Wire {
    pub(super) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = watch::Sender::new(0);
        let told = cuts.clone();
        tokio::spawn(async move {
            while let Ok((inward, _)) = listener.accept().await {
                tokio::spawn(pass_on(inward, server, told.subscribe()));
            }
        });
        Self { address, cuts }
    }

    /// Ends all connections at once, with all that is on its way.
    pub(super) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn pass_on(mut inward: TcpStream, server: SocketAddr, mut cut: watch::Receiver<u64>) {
    let Ok(mut outward) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ = cut.changed() => {}
        _ = copy_bidirectional(&mut inward, &mut outward) => {}
    }
}
