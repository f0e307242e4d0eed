

kPlaceholder*
dtype0

xPlaceholder*
dtype0
)
yCasekx*
branches

J
fJ
f.
,

f
a
r
zNega"

rz:y:0"ª