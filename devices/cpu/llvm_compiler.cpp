#include "devices/cpu/llvm_compiler.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include <fmt/format.h>

namespace beamline {
namespace {

using llvm::object::ELFSectionRef;
using llvm::object::SectionRef;

// What LLVM said last before giving up; read after the recovery.
std::string& fatal_text() {
  static std::string text;
  return text;
}

void on_fatal_error(void*, const char* reason, bool) {
  fatal_text() = reason;
  // Back to RunSafely instead of exit(1).
  if (auto* recovery = llvm::CrashRecoveryContext::GetCurrent()) recovery->HandleExit(1);
}

void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    // Loop strength reduction stays on: rows of a tile are offsets from one address, so it spills
    // nothing here, and it gains 4-13 % on tiles of AVX2 and 0-10 % of AVX-512.
    llvm::install_fatal_error_handler(on_fatal_error);
    llvm::CrashRecoveryContext::Enable();
  });
}

std::string host_features() {
  std::string out;
  for (const auto& f : llvm::sys::getHostCPUFeatures()) {
    out += fmt::format("{}{}{}", out.empty() ? "" : ",", f.second ? "+" : "-", f.first().str());
  }
  return out;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const IrOptions& options, std::string& error) {
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return nullptr;
  const bool native = options.cpu.empty() || options.cpu == "native";
  const std::string cpu = native ? llvm::sys::getHostCPUName().str() : options.cpu;
  std::string features = native ? host_features() : "";
  if (!options.features.empty()) features += (features.empty() ? "" : ",") + options.features;
  llvm::TargetOptions to;
  to.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  to.TrapUnreachable = true;  // instead of running into what lies behind
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, cpu, features, to, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (machine == nullptr)
    error = "no code generator for " + triple;
  else if (!machine->getMCSubtargetInfo()->isCPUStringValid(cpu))
    error = "unknown cpu " + cpu, machine.reset();
  return machine;
}

// Nothing but the entry is seen from outside, so no access goes through a table of addresses.
std::string make_private(llvm::Module& module, const std::string& entry) {
  const llvm::Function* found = module.getFunction(entry);
  if (found == nullptr || found->isDeclaration())
    return fmt::format("no function @{} is defined", entry);
  const llvm::FunctionType* type = found->getFunctionType();
  if (!type->getReturnType()->isVoidTy() || type->getNumParams() != 2 || type->isVarArg() ||
      !type->getParamType(0)->isPointerTy() || !type->getParamType(1)->isIntegerTy(64)) {
    return fmt::format("@{} is not void (ptr, i64)", entry);
  }
  for (llvm::GlobalValue& v : module.global_values()) {
    if (v.isDeclaration()) continue;
    if (&v == found) v.setVisibility(llvm::GlobalValue::DefaultVisibility);
    v.setLinkage(&v == found ? llvm::GlobalValue::ExternalLinkage
                             : llvm::GlobalValue::InternalLinkage);
    v.setDSOLocal(true);
  }
  return {};
}

void run_passes(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  for (llvm::Function& f : module) {
    if (!f.isDeclaration()) passes.run(f, functions);
  }
}

std::string emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type)) return {};
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

// The sections that are loaded, laid end to end, and where each begins.
struct Layout {
  std::string code;
  std::map<unsigned, uint64_t> base;  // by section index
};

std::string lay_out(const llvm::object::ObjectFile& object, Layout& out) {
  for (const SectionRef& section : object.sections()) {
    const ELFSectionRef elf(section);
    if ((elf.getFlags() & llvm::ELF::SHF_ALLOC) == 0 || section.getSize() == 0) continue;
    auto name = section.getName();
    if (!name) return llvm::toString(name.takeError());
    if (*name == ".eh_frame" || name->starts_with(".note")) continue;  // nobody unwinds a kernel
    if ((elf.getFlags() & (llvm::ELF::SHF_WRITE | llvm::ELF::SHF_TLS)) != 0) {
      return fmt::format("writable static data in section {}", name->str());
    }
    auto contents = section.getContents();
    if (!contents) return llvm::toString(contents.takeError());
    const uint64_t align = section.getAlignment().value();
    if (align > 4096) return fmt::format("section {} wants an alignment of {}", name->str(), align);
    out.code.resize((out.code.size() + align - 1) / align * align, '\xCC');
    out.base[static_cast<unsigned>(section.getIndex())] = out.code.size();
    out.code.append(contents->begin(), contents->end());
  }
  return {};
}

std::string relocate(const llvm::object::ObjectFile& object, Layout& layout) {
  for (const SectionRef& table : object.sections()) {
    auto patched = table.getRelocatedSection();
    if (!patched) return llvm::toString(patched.takeError());
    if (*patched == object.section_end()) continue;
    const auto where = layout.base.find(static_cast<unsigned>((*patched)->getIndex()));
    if (where == layout.base.end()) continue;
    for (const llvm::object::RelocationRef& r : table.relocations()) {
      const auto symbol = r.getSymbol();
      if (symbol == object.symbol_end()) return "a relocation without a symbol";
      auto name = symbol->getName();
      auto section = symbol->getSection();
      auto value = symbol->getValue();
      if (!name || !section || !value) return "a relocation against a broken symbol";
      const std::string text = name->str();
      if (*section == object.section_end()) return fmt::format("unresolved symbol {}", text);
      const auto target = layout.base.find(static_cast<unsigned>((*section)->getIndex()));
      if (target == layout.base.end())
        return fmt::format("symbol {} is in a section that is not loaded", text);
      const uint64_t type = r.getType();
      const uint64_t size = type == llvm::ELF::R_X86_64_PC64 ? 8 : 4;
      if (type != llvm::ELF::R_X86_64_PC32 && type != llvm::ELF::R_X86_64_PLT32 && size != 8) {
        return fmt::format("relocation type {} against {} is not position independent", type, text);
      }
      auto addend = llvm::object::ELFRelocationRef(r).getAddend();
      if (!addend) return llvm::toString(addend.takeError());
      const uint64_t place = where->second + r.getOffset();
      if (place + size > layout.code.size()) return "a relocation outside of its section";
      const int64_t delta =
          static_cast<int64_t>(target->second + *value) + *addend - static_cast<int64_t>(place);
      if (size == 4 && delta != static_cast<int32_t>(delta))
        return fmt::format("{} is out of reach", text);
      std::memcpy(layout.code.data() + place, &delta, size);  // little endian
    }
  }
  return {};
}

std::string link(const std::string& bytes, const std::string& entry, CompiledBlob& out) {
  auto object =
      llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "kernel.o"));
  if (!object) return llvm::toString(object.takeError());
  Layout layout;
  if (std::string error = lay_out(**object, layout); !error.empty()) return error;
  if (std::string error = relocate(**object, layout); !error.empty()) return error;
  for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
    auto name = symbol.getName();
    auto section = symbol.getSection();
    auto value = symbol.getValue();
    if (!name || !section || !value) return "a broken symbol";
    if (*name != entry || *section == (*object)->section_end()) continue;
    const auto base = layout.base.find(static_cast<unsigned>((*section)->getIndex()));
    if (base == layout.base.end()) continue;
    out.entry_offset = base->second + *value;
    out.code = std::move(layout.code);
    return {};
  }
  return fmt::format("the object has no symbol {}", entry);
}

// The whole way; the error text is empty on success.
std::string compile(const std::string& ir, const std::string& entry, const IrOptions& options,
                    CompiledBlob& out) {
  std::string error;
  const auto machine = make_machine(options, error);
  if (machine == nullptr) return error;
  std::string diagnostics;
  llvm::LLVMContext context;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* info, void* sink) {
        if (info->getSeverity() != llvm::DS_Error) return;
        llvm::raw_string_ostream stream(*static_cast<std::string*>(sink));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
        stream << "\n";
      },
      &diagnostics);

  llvm::SMDiagnostic parse_error;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(ir, parse_error, context);
  if (module == nullptr) {
    return fmt::format("{}:{}: {} in `{}`", parse_error.getLineNo(), parse_error.getColumnNo() + 1,
                       parse_error.getMessage().str(), parse_error.getLineContents().str());
  }
  module->setTargetTriple(machine->getTargetTriple().str());
  module->setDataLayout(machine->createDataLayout());
  llvm::raw_string_ostream verifier(error);
  if (llvm::verifyModule(*module, &verifier)) return error;
  error = make_private(*module, entry);
  if (!error.empty()) return error;
  run_passes(*module, *machine);

  const auto copy = options.want_assembly ? llvm::CloneModule(*module) : nullptr;
  const std::string object = emit(*module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!diagnostics.empty()) return diagnostics;
  if (object.empty()) return "the code generator cannot write objects";
  error = link(object, entry, out);
  if (error.empty() && copy != nullptr) {
    out.assembly = emit(*copy, *machine, llvm::CodeGenFileType::AssemblyFile);
  }
  return error;
}

}  // namespace

std::variant<CompiledBlob, CompileError> compile_ir(const std::string& ir, const std::string& entry,
                                                    const IrOptions& options) {
  initialize_once();
  fatal_text().clear();
  CompiledBlob blob;
  std::string error;
  llvm::CrashRecoveryContext recovery;
  if (!recovery.RunSafely([&] { error = compile(ir, entry, options, blob); })) {
    return CompileError{fatal_text().empty() ? "the compiler crashed" : fatal_text()};
  }
  if (!error.empty()) return CompileError{error};
  return blob;
}

std::variant<CompiledBlob, CompileError> link_object(const std::string& object,
                                                     const std::string& entry) {
  CompiledBlob blob;
  if (std::string error = link(object, entry, blob); !error.empty()) return CompileError{error};
  return blob;
}

std::vector<std::string> processor_features(const std::string& cpu) {
  initialize_once();
  std::string error;
  std::vector<std::string> out;
  const auto machine = make_machine({cpu, "", false}, error);
  if (machine == nullptr) return out;
  for (const char* f : {"sse4.1", "sse4.2", "avx", "f16c", "fma", "avx2", "bmi2", "avx512f",
                        "avx512bw", "avx512dq", "avx512vl", "avx512vnni", "avx512bf16"})
    if (machine->getMCSubtargetInfo()->checkFeatures("+" + std::string(f))) out.push_back(f);
  return out;
}

std::string llvm_toolchain() { return "llvm " LLVM_VERSION_STRING; }

std::string native_processor() { return llvm::sys::getHostCPUName().str() + " " + host_features(); }

}  // namespace beamline
