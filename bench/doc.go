// Package bench holds the benchmarks that span packages, and side-by-side
// comparisons with other ways to do the same. Its results directory keeps the
// figures that pages quote, each with the command that reproduces it.
//
// The program in the folder compare measures whole tunnels, beside the kernel's own
// vxlan device: go run ./bench/compare, as root. The one in the folder growth measures
// how the cost of a frame grows with MACs, VNIs, peers and ports: go run
// ./bench/growth. The test in the folder soak runs two end points under full load, as
// root, and asks what grows with time: make soak.
package bench
