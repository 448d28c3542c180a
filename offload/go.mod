module github.com/vxswitch/vxswitch/offload

go 1.26.0

require (
	github.com/cilium/ebpf v0.22.0
	github.com/google/gopacket v1.1.19
	github.com/vxswitch/vxswitch v0.0.0
	golang.org/x/sys v0.49.0
)

require golang.org/x/net v0.62.0 // indirect

replace github.com/vxswitch/vxswitch => ..
