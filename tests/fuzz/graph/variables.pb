
-
v
VariableV2*
dtype0*
shape:

xPlaceholder*
dtype0

setAssignvx

yMulvx^set"ª