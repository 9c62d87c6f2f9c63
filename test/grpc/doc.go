// Package grpc tests clients and servers of gRPC that speak xDS themselves
// (https://github.com/grpc/proposal/blob/master/A27-xds-global-load-balancing.md), without a proxy,
// as Istio serves them (https://istio.io/latest/blog/2021/proxyless-grpc/): real ones, on loopback.
// What each language must do is one table of steps (languages_test.go); the rest is tried with
// grpc-go.
package grpc
