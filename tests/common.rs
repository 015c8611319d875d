//! What the tests across parts share.
