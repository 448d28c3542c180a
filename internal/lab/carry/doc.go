// Package carry runs suites of tests a second time, with flows carried in the kernel by module offload: make carried. A suite
// gives its switches to [On], and runs in [Suite].
//
// The core's module does not know module offload. So open.go is replaced by testdata/open.txt (go test -overlay), which does:
//
//	DATAPATH=kernel go test -overlay carry.json ./internal/lab/chaos
//
// A suite that carries nothing is no test of it and fails. What runs, what is left out and why is in tests.go; make needless runs
// what is left out, which must fail or carry nothing.
package carry
