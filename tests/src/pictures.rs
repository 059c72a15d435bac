//! The pictures of the book: what each rule lets pass, made by the real limiter in simulated time.
//!
//! They are files in `docs/pictures`, and a test holds that they are as they would be made now. To make
//! them again: `TOLLGATE_PICTURES=write cargo test -p tollgate-tests pictures`.

mod drawing;
mod scene;

use drawing::draw;
use scene::{SCENES, play};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures")
}

#[tokio::test]
async fn every_picture_of_a_rule_is_as_the_limiter_decides_now() {
    let mut stale = Vec::new();
    for scene in SCENES {
        let file = folder().join(format!("{}.svg", scene.name));
        let picture = draw(scene, &play(scene).await);
        if env::var("TOLLGATE_PICTURES").is_ok_and(|wish| wish == "write") {
            fs::write(&file, &picture).unwrap();
        }
        if fs::read_to_string(&file).ok().as_deref() != Some(&picture) {
            stale.push(scene.name);
        }
    }
    let again = "TOLLGATE_PICTURES=write cargo test -p tollgate-tests pictures";
    assert!(stale.is_empty(), "{stale:?} would look different: {again}");
}

#[test]
fn the_book_shows_every_picture_and_no_other() {
    let pages = fs::read_dir(folder().join("..")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|it| it == "md"));
    let book: String = pages.map(|page| fs::read_to_string(page).unwrap()).collect();
    let pictures = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    for picture in pictures.map(|name| name.into_string().unwrap()) {
        assert!(book.contains(&format!("](pictures/{picture})")), "no page shows {picture}");
    }
    for scene in SCENES {
        assert!(
            folder().join(format!("{}.svg", scene.name)).is_file(),
            "{} is missing",
            scene.name
        );
    }
}
