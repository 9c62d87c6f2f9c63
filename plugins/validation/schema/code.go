package schema

import (
	"embed"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Codes of this package.
const (
	CodeRequired  = "COX1101"
	CodeValue     = "COX1102"
	CodeRule      = "COX1103"
	CodeTooMany   = "COX1105"
	CodeDuplicate = "COX1106"
	CodeUnknown   = "COX1107"
	CodeSchema    = "COX1108"
)

//go:embed codes/*.txtar
var codeFiles embed.FS

// Codes are what Check finds, sorted by id.
func Codes() []finding.Code { return finding.ReadCodes(codeFiles, "codes") }
