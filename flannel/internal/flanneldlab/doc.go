// Package flanneldlab builds the real flanneld, and runs it in network namespaces as a peer for tests. It is for Linux.
package flanneldlab
