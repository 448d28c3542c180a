module github.com/vxswitch/vxswitch/offload

go 1.26.0

require (
	github.com/cilium/ebpf v0.22.0
	github.com/vxswitch/vxswitch v0.0.0
	golang.org/x/sys v0.49.0
)

replace github.com/vxswitch/vxswitch => ..
