package istio

import "github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"

// use notes that a view needs what a scope sees; release takes it back. Only scopes in use are computed.
func (e *engine) use(s scope.Scope) {
	e.scopes[s]++
	if e.scopes[s] == 1 {
		e.g.scopes.Live.Set(s, struct{}{})
	}
}

func (e *engine) release(s scope.Scope) {
	e.scopes[s]--
	if e.scopes[s] == 0 {
		delete(e.scopes, s)
		e.g.scopes.Live.Delete(s)
	}
}
