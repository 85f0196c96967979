// A vendor's library, for shared_library_test: both of its releases.
extern "C" int sampleAnswer() {
  return 42;
}
