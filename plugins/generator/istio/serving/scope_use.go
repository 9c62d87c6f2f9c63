package serving

import "github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"

// use notes that a view needs what a scope sees; release takes it back. Only scopes in use are
// computed.
func (e *Engine) use(s scope.Scope) {
	e.scopes[s]++
	if e.scopes[s] == 1 {
		e.from.Scopes.Live.Set(s, struct{}{})
	}
}

func (e *Engine) release(s scope.Scope) {
	e.scopes[s]--
	if e.scopes[s] == 0 {
		delete(e.scopes, s)
		e.from.Scopes.Live.Delete(s)
	}
}
