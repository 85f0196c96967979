// A vendor's library, for shared_library_test: the function that both releases have.
extern "C" int sampleAnswer() {
  return 42;
}
