module github.com/vxswitch/vxswitch

go 1.26.0

require (
	github.com/gaissmai/bart v0.30.0
	github.com/google/gopacket v1.1.19
	github.com/mdlayher/arp v0.0.0-20220512170110-6706a2966875
	github.com/mdlayher/ethernet v0.0.0-20220221185849-529eae5b6118
	github.com/songgao/water v0.0.0-20200317203138-2b4b6d7c09d8
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.62.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/josharian/native v1.1.0 // indirect
	github.com/mdlayher/packet v1.1.2 // indirect
	github.com/mdlayher/socket v0.4.1 // indirect
	golang.org/x/sync v0.1.0 // indirect
)
