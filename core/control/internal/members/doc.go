// Package members is who takes part: sessions that come and go (Members), what operators and
// plugins.yaml have done (Orders), plugins that may be removed (Removals), and those that may take
// another's place (Trials). It has no clock, lock or goroutine: who drives it says what time it is,
// in state.Clock.
package members
