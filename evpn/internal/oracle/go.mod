module github.com/vxswitch/vxswitch/evpn/internal/oracle

go 1.26.0

require (
	github.com/osrg/gobgp/v4 v4.8.0
	github.com/vxswitch/vxswitch v0.0.0
	github.com/vxswitch/vxswitch/evpn v0.0.0
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/vxswitch/vxswitch => ../../..
	github.com/vxswitch/vxswitch/evpn => ../..
)
