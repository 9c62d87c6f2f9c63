package protoyaml

// Codes of faults; plugins/validation explains them.
const (
	CodeSyntax   = "COX1001"
	CodeTwice    = "COX1002"
	CodeUnknown  = "COX1003"
	CodeValue    = "COX1004"
	CodeTooLarge = "COX1005"
	CodeOneof    = "COX1006"
	CodeNull     = "COX1007"
	// CodeUnknownType is for messages of any type.
	CodeUnknownType = "COX1008"
)
