module github.com/vxswitch/vxswitch

go 1.26.0

require (
	github.com/google/gopacket v1.1.19
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.62.0
	golang.org/x/sys v0.49.0
)
