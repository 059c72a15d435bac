//! The upstream: writes down every call that arrives, and does not let go of one of them.

use crate::peer::{Peer, message, read};
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// A call as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) worker: String,
    pub(crate) id: String,
    pub(crate) lane: String,
    pub(crate) sequence: u64,
    pub(crate) attempt: u64,
    pub(crate) lease: String,
}

/// All that arrived, in order.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    arrivals: Vec<Arrival>,
    /// The worker that gets no answer once so many calls have arrived.
    victim: (String, usize),
    /// The call that gets none, once it is there.
    held: Option<Arrival>,
    holds: Sender<()>,
    /// What the server said when the held call was settled after its lease was lost.
    late: Option<Value>,
    tollgate: SocketAddr,
}

impl Upstream {
    /// Listens. Once so many calls have arrived, the next of this worker gets no answer; the receiver
    /// is told.
    pub(crate) fn start(tollgate: SocketAddr, victim: &str, after: usize) -> (Self, Receiver<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (holds, held) = channel();
        let victim = (victim.to_owned(), after);
        let state = State { arrivals: vec![], victim, held: None, holds, late: None, tollgate };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream.unwrap(), &state));
            }
        });
        (Self { address, state }, held)
    }

    /// All that arrived, in order.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.state.lock().unwrap().arrivals.clone()
    }

    /// The call that got no answer.
    pub(crate) fn held(&self) -> Arrival {
        self.state.lock().unwrap().held.clone().unwrap()
    }

    /// What the server said to the settlement that came late; `None` if the call never came again.
    pub(crate) fn late(&self) -> Option<Value> {
        self.state.lock().unwrap().late.clone()
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut stream = BufReader::new(stream);
    // A worker that was killed is gone, or cut off in the middle.
    while let Ok(Some((_, body))) = read(&mut stream) {
        let told: Value = serde_json::from_slice(&body).unwrap();
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        let arrival = Arrival {
            worker: text("worker"),
            id: text("id"),
            lane: text("lane"),
            sequence: told["sequence"].as_u64().unwrap(),
            attempt: told["attempt"].as_u64().unwrap(),
            lease: text("lease"),
        };
        if state.lock().unwrap().is_answered(arrival) {
            let answer = message("HTTP/1.1 200 OK", "{}");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        } else {
            // Until the worker is gone.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
}

impl State {
    /// Writes the call down, and says whether it gets an answer.
    fn is_answered(&mut self, arrival: Arrival) -> bool {
        self.arrivals.push(arrival.clone());
        let (victim, after) = &self.victim;
        match &self.held {
            None if arrival.worker == *victim && self.arrivals.len() > *after => {
                self.held = Some(arrival);
                self.holds.send(()).unwrap();
                false
            }
            // Another has the call now, and has not settled it: a settlement that was accepted for the
            // first would end it under the second's hands.
            Some(held) if held.id == arrival.id && self.late.is_none() => {
                let settlement = json!({"lease": held.lease, "outcome": "done"});
                let mut tollgate = Peer::connect(self.tollgate);
                self.late = Some(tollgate.succeed("POST", "/v1/settle", &settlement));
                true
            }
            _ => true,
        }
    }
}
