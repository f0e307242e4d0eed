// A library that is no engine.
extern "C" __attribute__((visibility("default"))) int heddle_not_an_engine() { return 0; }
