module github.com/vxswitch/vxswitch/flannel

go 1.26.0

require (
	github.com/vxswitch/vxswitch v0.0.0
	go.uber.org/goleak v1.3.0
)

replace github.com/vxswitch/vxswitch => ..
