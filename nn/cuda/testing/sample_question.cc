// A vendor's library, for shared_library_test: what its old release has not.
extern "C" int sampleQuestion(int six, int nine) {
  return 10 * six + nine;
}
