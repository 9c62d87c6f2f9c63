package analysis

import "github.com/coxswain-mesh/coxswain/plugins/internal/kinds"

// nowhere are the codes of what leads to nothing, or applies to nobody.
var nowhere = map[string]bool{
	kinds.CodeUnserved: true, kinds.CodeUnservedPart: true,
	notFound: true, noSuchPort: true, hostNotInGateway: true, unusedGateway: true, noWorkloads: true,
	lostDelegate: true, unknownHost: true, emptySubset: true, unreachableRule: true, ineffectiveMatch: true, hiddenHost: true,
}

// LeadsNowhere reports whether a finding of this code says that some part of an object has no
// effect, because what it names is not there or nothing gets to it.
func LeadsNowhere(code string) bool { return nowhere[code] }
