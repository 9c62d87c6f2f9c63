package istio

// use notes that a view needs what a scope sees; release takes it back. Only scopes in use are computed.
func (e *engine) use(s Scope) {
	e.scopes[s]++
	if e.scopes[s] == 1 {
		e.g.live.Set(s, struct{}{})
	}
}

func (e *engine) release(s Scope) {
	e.scopes[s]--
	if e.scopes[s] == 0 {
		delete(e.scopes, s)
		e.g.live.Delete(s)
	}
}
