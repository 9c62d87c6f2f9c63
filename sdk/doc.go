// Package sdk is for authors of Coxswain plugins: implement the small interface of a kind and call Serve.
//
// The same source builds as a process plugin (go build) and as a WASM plugin (GOOS=wasip1 GOARCH=wasm go build). Authors never
// see messages of the contract (package sdk/proto); Serve speaks them.
package sdk
