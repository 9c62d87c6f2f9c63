package control

// LetGo lets go of so many bytes of what was left, or a little more, the oldest first, and for a
// while of what nobody uses without waiting for those who may be back soon: memory is short.
func (c *Control) LetGo(bytes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving.Placer.LetGo(bytes)
	c.schedule(c.state.Clock.Now())
}
