// Package etcd is what plugins that read or write an etcd share: how it is reached, and a prefix
// that is followed, whatever befalls the connection, the server or its history.
package etcd
