// Models that tests write with libonnx, from its text form. libonnx's headers stay in one source.
#pragma once
#include <string>

namespace beamline::test {

/// "<ir_version: 8, opset_import: ["" : OPSET]>" is put in front of `graph`. Inputs called w_...
/// become initialisers with values in [-0.5, 0.5) that depend on the name alone. Aborts the test on
/// a text that libonnx does not read. The file lies in the test's temporary folder.
std::string write_model(const std::string& file, const std::string& graph, int opset = 17);

/// What a broken writer makes of the model at `path`: that file with one thing wrong.
enum class Damage {
  ExternalData,     // the first initialiser's data moves to "weights.bin", which is not written
  ExternalOutside,  // ... to "../weights.bin"
  ShortData,        // the first initialiser's data loses its last byte
  SameInitialiser,  // the first initialiser occurs twice
  SameOutput,       // the last node makes what the first one makes
  GiantDims,        // the first input's dims are 2^40 each
  NegativeDim,      // the first input's first dim is -3
  NoShape,          // the first input has no shape
  StringInput,      // the first input holds strings
  NoOpset,          // no opset is named
  NoOutputs,        // the graph has no outputs
  BackwardOrder,    // the nodes stand in opposite order
  ForeignDomain,    // the first node is of domain "com.example"
};
void damage(const std::string& path, Damage kind);

}  // namespace beamline::test
