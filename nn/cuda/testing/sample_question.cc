// A vendor's library, for shared_library_test: the function that its old release lacks.
extern "C" int sampleQuestion(int six, int nine) {
  return 10 * six + nine;
}
