// Package grpc tests clients and servers of gRPC that speak xDS themselves (https://github.com/grpc/proposal/blob/master/A27-xds-global-load-balancing.md),
// without a proxy, as Istio serves them (https://istio.io/latest/blog/2021/proxyless-grpc/): real ones of grpc-go, on loopback.
package grpc
