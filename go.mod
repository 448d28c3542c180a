module github.com/vxswitch/vxswitch

go 1.26
