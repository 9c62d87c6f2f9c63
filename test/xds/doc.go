// Package xds tries config/xds against real servers of MCP over xDS: a Coxswain whose generator/api
// answers another one's questions, over lines that are cut and stall, and by TLS. test/kube does so
// with an istiod.
package xds
