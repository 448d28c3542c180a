module github.com/vxswitch/vxswitch/discovery

go 1.26.0

require github.com/vxswitch/vxswitch v0.0.0

replace github.com/vxswitch/vxswitch => ..
