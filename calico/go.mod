module github.com/vxswitch/vxswitch/calico

go 1.26.0

require (
	github.com/vxswitch/vxswitch v0.0.0
	github.com/vxswitch/vxswitch/bgp v0.0.0
	github.com/vxswitch/vxswitch/flannel v0.0.0
)

replace (
	github.com/vxswitch/vxswitch => ..
	github.com/vxswitch/vxswitch/bgp => ../bgp
	github.com/vxswitch/vxswitch/flannel => ../flannel
	github.com/vxswitch/vxswitch/hostnet => ../hostnet
)
