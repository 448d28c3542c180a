module github.com/vxswitch/vxswitch/ovsdb

go 1.26.0

require github.com/vxswitch/vxswitch v0.0.0

require github.com/gaissmai/bart v0.30.0 // indirect

replace github.com/vxswitch/vxswitch => ..
