package kinds

import (
	"embed"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Codes of faults; plugins/validation explains them.
const (
	CodeObject   = "COX1010"
	CodeKind     = "COX1011"
	CodeMetadata = "COX1012"
	CodeRival    = "COX1013"
	CodeFile     = "COX1014"
	CodeSize     = "COX1015"
	CodeSecret   = "COX1016"
	CodeUnserved = "COX1017"
	// CodeUnservedPart is of an object that is served but for what the fault says.
	CodeUnservedPart = "COX1018"
)

//go:embed codes/*.txtar
var codeFiles embed.FS

// Codes are those of this package and of protoyaml, sorted by id.
func Codes() []finding.Code { return finding.ReadCodes(codeFiles, "codes") }
