#compdef vxsctl
# Words for vxsctl, from vxsctl itself.
_vxsctl() {
	local list files
	list=$(vxsctl complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
	files=$?
	[[ -n $list ]] && compadd -- "${(@f)list}"
	(( files == 3 )) && _files
}
if [[ $funcstack[1] == _vxsctl ]]; then
	_vxsctl "$@"
else
	compdef _vxsctl vxsctl
fi
