package istio

// Selects reports whether labels hold all of a selector's, as policies ask for workloads: an empty
// selector selects everything.
func Selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// ServiceSelects is Selects as services ask for workloads: an empty selector selects nothing.
func ServiceSelects(selector, labels map[string]string) bool {
	return len(selector) > 0 && Selects(selector, labels)
}
