// Package ui plays stories of the page of core/ui in a real browser: somebody looks at it while a
// control plane works, and whoever can write a name, a label or a reason has planted markup; and
// there is much to look at.
package ui
