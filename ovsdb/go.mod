module github.com/vxswitch/vxswitch/ovsdb

go 1.26.0

require (
	github.com/vxswitch/vxswitch v0.0.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/gaissmai/bart v0.30.0 // indirect
	github.com/songgao/water v0.0.0-20200317203138-2b4b6d7c09d8 // indirect
	golang.org/x/net v0.62.0 // indirect
)

replace github.com/vxswitch/vxswitch => ..
