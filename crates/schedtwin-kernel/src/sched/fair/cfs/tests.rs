//! Tests of CFS.
