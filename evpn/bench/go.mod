module github.com/vxswitch/vxswitch/evpn/bench

go 1.26.0

require (
	github.com/vxswitch/vxswitch v0.0.0
	github.com/vxswitch/vxswitch/evpn v0.0.0
	github.com/vxswitch/vxswitch/offload v0.0.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/cilium/ebpf v0.22.0 // indirect
	github.com/gaissmai/bart v0.30.0 // indirect
	github.com/songgao/water v0.0.0-20200317203138-2b4b6d7c09d8 // indirect
	github.com/vishvananda/netlink v1.3.1 // indirect
	github.com/vishvananda/netns v0.0.5 // indirect
	golang.org/x/net v0.62.0 // indirect
)

replace (
	github.com/vxswitch/vxswitch => ../..
	github.com/vxswitch/vxswitch/evpn => ..
	github.com/vxswitch/vxswitch/offload => ../../offload
)
