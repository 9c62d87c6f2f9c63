// Package ui plays stories of the page of core/ui in a real browser: somebody looks at it while a
// control plane works, and whoever can write a name, a label or a reason has planted markup.
package ui
