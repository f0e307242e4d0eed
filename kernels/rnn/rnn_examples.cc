// Examples of the operators in rnn.cc.
#include "core/op_def.h"

HEDDLE_EXAMPLES(rnn, R"(
example float32 LSTM
attr mode STRING "LSTM"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float32 [2, 2, 3] -0.74 0.65 0.11 -0.7 0.25 -0.03 -0.16 0.01 -0.8 0.17 -0.58 0.8
in PreState float32 [1, 2, 2] 0.25 0.97 0.59 -0.99
in PreState float32 [1, 2, 2] 0.25 0.97 0.59 -0.99
in WeightList float32 [8, 3] -0.49 -0.07 -0.81 -0.98 0.69 -0.19 0.04 -0.48 -0.64 -0.3 0.26 0.05
  -0.13 0.81 -0.21 -0.8 0.39 -0.52 -0.59 0.8 0.96 -0.85 -0.22 -0.94
in WeightList float32 [8, 2] -0.06 -0.81 -0.72 0.02 0.21 0.83 -0.28 0.34 0.08 -0.19 -0.39 0.81 0.23
  -0.02 0.35 -0.06
in WeightList float32 [8] -0.7 0.67 0.79 -0.68 -0.03 -0.21 0.67 -0.9
in WeightList float32 [8] -0.04 0.92 0.38 0.09 -0.58 0.91 0.38 -0.52
out Out float32 [2, 2, 2] 0.15245104 0.23711132 0.25027224 -0.0048011593 -0.022460435 0.32371935
  0.045045845 -0.013289192
out State float32 [1, 2, 2] -0.022460435 0.32371935 0.045045845 -0.013289192
out State float32 [1, 2, 2] -0.0373134 1.2737734 0.057246074 -0.12253093
out DropoutState ?
out Reserve ?

example float32 LSTM with lengths
attr mode STRING "LSTM"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float32 [2, 2, 3] 0.51 0.76 0.79 -0.89 0.43 0.03 -0.18 -0.09 -0.33 0.29 0.32 -0.14
in PreState float32 [1, 2, 2] 0.25 0.97 0.59 -0.99
in PreState float32 [1, 2, 2] 0.25 0.97 0.59 -0.99
in WeightList float32 [8, 3] -0.49 -0.07 -0.81 -0.98 0.69 -0.19 0.04 -0.48 -0.64 -0.3 0.26 0.05
  -0.13 0.81 -0.21 -0.8 0.39 -0.52 -0.59 0.8 0.96 -0.85 -0.22 -0.94
in WeightList float32 [8, 2] -0.06 -0.81 -0.72 0.02 0.21 0.83 -0.28 0.34 0.08 -0.19 -0.39 0.81 0.23
  -0.02 0.35 -0.06
in WeightList float32 [8] -0.7 0.67 0.79 -0.68 -0.03 -0.21 0.67 -0.9
in WeightList float32 [8] -0.04 0.92 0.38 0.09 -0.58 0.91 0.38 -0.52
in SequenceLength int32 [2] 2 1
out Out float32 [2, 2, 2] 0.1443075 0.045816902 0.31996068 0.043407492 -0.052590758 0.21830133 0 0
out State float32 [1, 2, 2] -0.052590758 0.21830133 0.31996068 0.043407492
out State float32 [1, 2, 2] -0.07637718 0.9717908 0.3757478 0.116980016
out DropoutState ?
out Reserve ?

example float32 GRU
attr mode STRING "GRU"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float32 [2, 2, 3] 0.38 0.58 0.76 -0.4 0.9 0.78 0.81 0.82 0.08 0.47 0.1 0.34
in PreState float32 [1, 2, 2] -0.39 -0.55 0.06 0.1
in WeightList float32 [6, 3] 0.06 -0.26 -0.95 -0.09 0.2 0.12 0.44 -0.45 -0.54 0.29 -0.57 -0.5 0.48
  0.22 0.03 0.18 -0.68 0.14
in WeightList float32 [6, 2] 0.52 -0.79 0.3 0.21 -0.78 -0.46 0.9 -0.96 0.26 0.53 0.01 0.81
in WeightList float32 [6] -0.74 -0.07 0.85 -0.19 -0.09 0.44
in WeightList float32 [6] 0.23 -0.91 -0.12 0.56 0.16 -0.1
out Out float32 [2, 2, 2] -0.21002945 -0.22827524 0.012309963 -0.060057063 -0.0269031 -0.13934977
  0.075516246 0.14393301
out State float32 [1, 2, 2] -0.0269031 -0.13934977 0.075516246 0.14393301
out DropoutState ?
out Reserve ?

example float32 RNN_TANH
attr mode STRING "RNN_TANH"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float32 [2, 2, 3] -0.38 0.25 0.1 -0.52 -0.85 0.46 0.24 0.71 0.79 0.37 -0.38 1
in PreState float32 [1, 2, 2] 0.23 0.35 -0.28 -0.33
in WeightList float32 [2, 3] 0.83 -0.89 0.47 -0.47 0.09 0.48
in WeightList float32 [2, 2] 0.38 0.61 -0.85 0.6
in WeightList float32 [2] 0.2 -0.02
in WeightList float32 [2] -0.25 0.86
out Out float32 [2, 2, 2] -0.23549572 0.8017885 0.18137103 0.853445 0.28047973 0.9518912 0.9295163
  0.8995396
out State float32 [1, 2, 2] 0.28047973 0.9518912 0.9295163 0.8995396
out DropoutState ?
out Reserve ?

example float32 RNN_RELU
attr mode STRING "RNN_RELU"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float32 [2, 2, 3] 0.57 -0.63 -0.22 -0.75 0.18 -0.37 -0.96 -0.42 -0.81 0.54 -0.25 -0.79
in PreState float32 [1, 2, 2] 0.24 -0.96 0.88 0.38
in WeightList float32 [2, 3] 0.61 0.13 -0.6 -0.13 -0.8 0.96
in WeightList float32 [2, 2] 0.6 -0.65 0.83 0.43
in WeightList float32 [2] 0.69 0.77
in WeightList float32 [2] -0.58 -0.84
out Out float32 [2, 2, 2] 1.2758 0 0.17890006 0.42209995 0.72128004 0.67211396 0.7138752 0
out State float32 [1, 2, 2] 0.72128004 0.67211396 0.7138752 0
out DropoutState ?
out Reserve ?

example float64 LSTM
attr mode STRING "LSTM"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float64 [2, 2, 3] 0.18 -0.17 -0.2 -0.63 0.78 0.21 -0.4 0.31 0.66 -0.01 0.28 0.7
in PreState float64 [1, 2, 2] -0.3 0.72 0.69 -0.74
in PreState float64 [1, 2, 2] -0.3 0.72 0.69 -0.74
in WeightList float64 [8, 3] 0.04 -0.16 -0.47 0.43 -0.67 -0.77 -0.33 0.71 0.24 0.16 0.83 -0.56 -0.56
  -0.79 0.02 0.53 -0.17 -0.5 0.35 0.4 -0.66 -0.21 -0.37 -0.89
in WeightList float64 [8, 2] -0.38 -0.3 0.42 -0.04 -0.71 -0.54 -0.7 -0.41 0.1 -0.03 -0.49 0.85 0.11
  -0.25 -0.32 0.08
in WeightList float64 [8] -0.44 0.61 -0.43 -0.57 -0.12 0.38 -0.65 -0.23
in WeightList float64 [8] -0.11 -0.58 -0.14 0.66 0.06 0.9 0.32 -0.35
out Out float64 [2, 2, 2] -0.04460854443611235 0.31915472916186444 0.13871040571654156
  -0.11057141926133025 -0.02145105364758249 0.13322164634166186 0.022945959066723896
  -0.006657193572409721
out State float64 [1, 2, 2] -0.02145105364758249 0.13322164634166186 0.022945959066723896
  -0.006657193572409721
out State float64 [1, 2, 2] -0.07259072197415463 0.6291475518012501 0.06658684281612809
  -0.032547661762267366
out DropoutState ?
out Reserve ?

example float64 LSTM with lengths
attr mode STRING "LSTM"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float64 [2, 2, 3] 0.95 0.8 0.69 -0.12 -0.71 0.05 0.11 0.61 0.78 0.99 -0.81 -0.43
in PreState float64 [1, 2, 2] -0.3 0.72 0.69 -0.74
in PreState float64 [1, 2, 2] -0.3 0.72 0.69 -0.74
in WeightList float64 [8, 3] 0.04 -0.16 -0.47 0.43 -0.67 -0.77 -0.33 0.71 0.24 0.16 0.83 -0.56 -0.56
  -0.79 0.02 0.53 -0.17 -0.5 0.35 0.4 -0.66 -0.21 -0.37 -0.89
in WeightList float64 [8, 2] -0.38 -0.3 0.42 -0.04 -0.71 -0.54 -0.7 -0.41 0.1 -0.03 -0.49 0.85 0.11
  -0.25 -0.32 0.08
in WeightList float64 [8] -0.44 0.61 -0.43 -0.57 -0.12 0.38 -0.65 -0.23
in WeightList float64 [8] -0.11 -0.58 -0.14 0.66 0.06 0.9 0.32 -0.35
in SequenceLength int32 [2] 2 1
out Out float64 [2, 2, 2] -0.13713147579193083 0.11148989008373048 0.14599911801462684
  -0.005931963479983131 -0.11014872786744492 0.10283546491777543 0 0
out State float64 [1, 2, 2] -0.11014872786744492 0.10283546491777543 0.14599911801462684
  -0.005931963479983131
out State float64 [1, 2, 2] -0.32266059658087654 0.6186393825383073 0.38843623013507766
  -0.01692324368252568
out DropoutState ?
out Reserve ?

example float64 GRU
attr mode STRING "GRU"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float64 [2, 2, 3] -0.35 -0.12 0.52 0.16 0.61 0.61 -0.01 0.73 0.45 0.4 0.69 -0.76
in PreState float64 [1, 2, 2] -0.41 -0.32 0.64 -0.94
in WeightList float64 [6, 3] -0.11 0.35 0.49 0.85 -0.47 -0.29 -0.86 -0.69 -0.58 0.8 0.4 -0.74 0.87
  -0.86 0.17 0.4 -0.94 -0.21
in WeightList float64 [6, 2] 0.08 0.28 -0.1 -0.21 0.53 0.63 0.15 0.7 -0.9 0 -0.51 0.82
in WeightList float64 [6] -0.92 -0.64 0.85 -0.06 -0.53 -0.96
in WeightList float64 [6] -0.41 -0.69 -0.69 0.95 0.49 -0.47
out Out float64 [2, 2, 2] -0.41388743352050594 -0.5879997920060074 -0.32830324592506904
  -0.9462634403671063 -0.6327491126679954 -0.7373872341959913 -0.5701008271349626
  -0.9414308341927069
out State float64 [1, 2, 2] -0.6327491126679954 -0.7373872341959913 -0.5701008271349626
  -0.9414308341927069
out DropoutState ?
out Reserve ?

example float64 RNN_TANH
attr mode STRING "RNN_TANH"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float64 [2, 2, 3] -0.36 0.69 -0.81 -0.18 -0.83 0.92 0.24 0.85 -0.99 0.43 0.95 0.68
in PreState float64 [1, 2, 2] -0.71 0.15 0.79 -0.77
in WeightList float64 [2, 3] 0.79 -0.89 0.93 0.21 0.41 0.37
in WeightList float64 [2, 2] 0.04 -0.56 -0.82 0.68
in WeightList float64 [2] 0.04 -0.1
in WeightList float64 [2] -0.8 0.94
out Out float64 [2, 2, 2] -0.9872427035207626 0.8920348827615389 0.8193708501457662
  -0.3532042409263532 -0.9924325732309647 0.9796469994063908 -0.38236848809593116 0.5779220328521771
out State float64 [1, 2, 2] -0.9924325732309647 0.9796469994063908 -0.38236848809593116
  0.5779220328521771
out DropoutState ?
out Reserve ?

example float64 RNN_RELU
attr mode STRING "RNN_RELU"
attr hidden_size INT 2
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN true
attr input_size INT 3
attr dropout_prob FLOAT 0.0
attr seed INT 0
in Input float64 [2, 2, 3] -0.39 -0.7 0.77 0.6 0.57 -0.9 -0.9 0.94 -0.69 -0.87 0.81 -0.91
in PreState float64 [1, 2, 2] 0.74 -0.59 0.7 -0.61
in WeightList float64 [2, 3] -0.96 -0.06 0.31 0.49 -0.8 -0.3
in WeightList float64 [2, 2] 0.7 -0.65 0.99 0.76
in WeightList float64 [2] 0 0.75
in WeightList float64 [2] -0.37 0.58
out Out float64 [2, 2, 2] 1.1865999999999999 1.7520999999999998 0 1.6674000000000002 0
  2.8503299999999996 0 1.795924
out State float64 [1, 2, 2] 0 2.8503299999999996 0 1.795924
out DropoutState ?
out Reserve ?
)")

HEDDLE_EXAMPLES(rnn_grad, R"(
example float32 GRU
in x float32 [2, 1, 3] -0.77 -0.46 -0.07 -0.07 -0.74 -0.8
in h float32 [1, 1, 2] -0.37 -0.89
in a float32 [6, 3] 0.06 -0.26 -0.95 -0.09 0.2 0.12 0.44 -0.45 -0.54 0.29 -0.57 -0.5 0.48 0.22 0.03
  0.18 -0.68 0.14
in b float32 [6, 2] 0.52 -0.79 0.3 0.21 -0.78 -0.46 0.9 -0.96 0.26 0.53 0.01 0.81
in p float32 [6] -0.74 -0.07 0.85 -0.19 -0.09 0.44
in q float32 [6] 0.23 -0.91 -0.12 0.56 0.16 -0.1
in g float32 [2, 1, 2] -0.53 0.54 -0.92 -0.82
in dsh float32 [1, 1, 2] -0.62 -0.19
op rnn Input=x PreState=h WeightList=a,b,p,q -> Out=o State=sh DropoutState=d Reserve=r
attr mode STRING "GRU"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
op rnn_grad Input=x PreState=h WeightList=a,b,p,q Out=o DropoutState=d Reserve=r Out@GRAD=g
  State@GRAD=dsh -> Input@GRAD=dx WeightList@GRAD=da,db,dp,dq PreState@GRAD=dh
attr mode STRING "GRU"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
out dx float32 [2, 1, 3] -0.118156396 -0.006406687 -0.06358191 -0.037221342 -0.05089874 -0.12650254
out da float32 [6, 3] -0.01672462 -0.015297297 -0.0075518116 -0.013394173 -0.015720809 -0.009992091
  0.062493805 0.03774713 0.006150908 -0.11614545 -0.2058976 -0.16573444 0.16962034 0.20151046
  0.12929517 0.10083923 0.15430693 0.11609301
out db float32 [6, 2] -0.011041779 -0.0227664 -0.010808219 -0.020479303 0.030263506 0.0725006
  -0.13312988 -0.22263071 0.08128768 0.14869696 0.020250436 0.03601848
out dp float32 [6] 0.028629094 0.027445935 -0.08169876 0.32858825 -0.35072732 -0.25344092
out dq float32 [6] 0.028629094 0.027445935 -0.08169876 0.32858825 -0.20471469 -0.05067075

example float64 LSTM
in x float64 [2, 1, 3] -0.12 -0.47 -0.72 -0.82 0.53 0.39
in h float64 [1, 1, 2] -0.24 0.27
in c float64 [1, 1, 2] -0.43 0.23
in a float64 [8, 3] 0.04 -0.16 -0.47 0.43 -0.67 -0.77 -0.33 0.71 0.24 0.16 0.83 -0.56 -0.56 -0.79
  0.02 0.53 -0.17 -0.5 0.35 0.4 -0.66 -0.21 -0.37 -0.89
in b float64 [8, 2] -0.38 -0.3 0.42 -0.04 -0.71 -0.54 -0.7 -0.41 0.1 -0.03 -0.49 0.85 0.11 -0.25
  -0.32 0.08
in p float64 [8] -0.44 0.61 -0.43 -0.57 -0.12 0.38 -0.65 -0.23
in q float64 [8] -0.11 -0.58 -0.14 0.66 0.06 0.9 0.32 -0.35
in g float64 [2, 1, 2] 0 -0.85 0.22 0.19
in dsh float64 [1, 1, 2] -0.63 -0.7
in dsc float64 [1, 1, 2] -0.6 0.87
op rnn Input=x PreState=h,c WeightList=a,b,p,q -> Out=o State=sh,sc DropoutState=d Reserve=r
attr mode STRING "LSTM"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
op rnn_grad Input=x PreState=h,c WeightList=a,b,p,q Out=o DropoutState=d Reserve=r Out@GRAD=g
  State@GRAD=dsh,dsc -> Input@GRAD=dx WeightList@GRAD=da,db,dp,dq PreState@GRAD=dh,dc
attr mode STRING "LSTM"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
out dx float64 [2, 1, 3] 0.12292598101986281 0.20089133113995628 0.11275445632970332
  0.25056763070250415 0.20686544779729826 -0.17543511221876498
out da float64 [8, 3] 0.0013152621802654655 0.016904307600036497 0.02457069330309554
  -0.09018083010272608 0.046104349459570385 0.025600964067411275 0.001150948809257782
  -0.019461307842900726 -0.027110272179555733 -0.12226364747142521 0.07572281081687587
  0.05346479679048927 0.18494005859874696 -0.02616038741708869 0.04455281683287886
  -0.08622826743943894 0.05299459782242435 0.037124927169728414 0.0009327785488415007
  -8.134215990427497e-5 0.00029652285510972285 0.06004042701374208 0.032008451147478495
  0.07194165199999633
out db float64 [8, 2] 0.007832048302328068 -0.007553049456001294 -0.0036358815308397702
  0.04683205073823878 -0.00830626721174418 0.0067789326679101 0.0009198331661994289
  0.058327345664979297 0.03772361022421314 -0.1227721547917269 0.0004672491387017999
  0.041296504399164505 0.00021266122374607327 -0.0006390019294730726 0.03017179010080848
  -0.05568805304669988
out dp float64 [8] -0.029283468820247245 0.12897056900005976 0.02777720864314638 0.15424873028866842
  -0.3711086579215699 0.10942549880566123 -0.0019506437347628245 -0.18362214435852345
out dq float64 [8] -0.029283468820247245 0.12897056900005976 0.02777720864314638 0.15424873028866842
  -0.3711086579215699 0.10942549880566123 -0.0019506437347628245 -0.18362214435852345

example float64 GRU
in x float64 [2, 1, 3] -0.22 -0.2 0.84 0.58 0.03 -0.63
in h float64 [1, 1, 2] -0.15 0.3
in a float64 [6, 3] -0.11 0.35 0.49 0.85 -0.47 -0.29 -0.86 -0.69 -0.58 0.8 0.4 -0.74 0.87 -0.86 0.17
  0.4 -0.94 -0.21
in b float64 [6, 2] 0.08 0.28 -0.1 -0.21 0.53 0.63 0.15 0.7 -0.9 0 -0.51 0.82
in p float64 [6] -0.92 -0.64 0.85 -0.06 -0.53 -0.96
in q float64 [6] -0.41 -0.69 -0.69 0.95 0.49 -0.47
in g float64 [2, 1, 2] 0.95 0.9 0.66 0.9
in dsh float64 [1, 1, 2] -0.59 -0.36
op rnn Input=x PreState=h WeightList=a,b,p,q -> Out=o State=sh DropoutState=d Reserve=r
attr mode STRING "GRU"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
op rnn_grad Input=x PreState=h WeightList=a,b,p,q Out=o DropoutState=d Reserve=r Out@GRAD=g
  State@GRAD=dsh -> Input@GRAD=dx WeightList@GRAD=da,db,dp,dq PreState@GRAD=dh
attr mode STRING "GRU"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
out dx float64 [2, 1, 3] 0.7510354782080556 -0.44241358036189216 -0.23417788653338079
  0.0766264388636916 -0.05826404330741107 -0.024511084423063746
out da float64 [6, 3] -0.010561445696712633 -0.011173831611655125 0.04533630188346992
  -0.0022951243621595323 0.0007462553316118807 -0.0002632182165833701 -0.005020284217334206
  -0.0035166563312262165 0.01583136239646021 -0.0622643538388082 -0.0738094664188648
  0.2925614886706411 -0.07385458211675613 -0.08629403744217223 0.34302233390960013
  -0.025619622244792226 -0.0466816992998135 0.17235556031252322
out db float64 [6, 2] -0.009032319413681609 0.016306748531512875 0.0017341061950572507
  -0.00030154961072870775 -0.002203320512168649 0.0055773309699947825 -0.06249028492632162
  0.10574682570466698 -0.020102174300287236 0.03706000164787108 -0.008543760959492894
  0.00788427734718727
out dp float64 [6] 0.059505784086656244 -0.010282293131500888 0.015161423171792556
  0.4088370361258313 0.4757648634998525 0.2875031656631498
out dq float64 [6] 0.059505784086656244 -0.010282293131500888 0.015161423171792556
  0.4088370361258313 0.1327450896319911 0.05324296044754327

example float64 RNN_TANH
in x float64 [2, 1, 3] -0.37 0.14 -0.03 0.08 -0.26 -0.51
in h float64 [1, 1, 2] 0.78 0.48
in a float64 [2, 3] 0.79 -0.89 0.93 0.21 0.41 0.37
in b float64 [2, 2] 0.04 -0.56 -0.82 0.68
in p float64 [2] 0.04 -0.1
in q float64 [2] -0.8 0.94
in g float64 [2, 1, 2] -0.43 0.73 -0.17 -0.25
in dsh float64 [1, 1, 2] -0.55 -0.89
op rnn Input=x PreState=h WeightList=a,b,p,q -> Out=o State=sh DropoutState=d Reserve=r
attr mode STRING "RNN_TANH"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
op rnn_grad Input=x PreState=h WeightList=a,b,p,q Out=o DropoutState=d Reserve=r Out@GRAD=g
  State@GRAD=dsh -> Input@GRAD=dx WeightList@GRAD=da,db,dp,dq PreState@GRAD=dh
attr mode STRING "RNN_TANH"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
out dx float64 [2, 1, 3] 0.07388398667502064 0.2901678077808731 0.15788613603370077
  -0.19997578064991944 0.11565765310496404 -0.256233354304329
out da float64 [2, 3] 0.005551260196735425 0.045697598596712935 0.10791142234603866
  -0.2272411098912961 0.12493503910513681 0.06914811846589405
out db float64 [2, 2] 0.13925296337173276 -0.12418993930795735 0.6020665554104527 0.1994624127847426
out dp float64 [2] -0.26805204055547044 0.4079491336377279
out dq float64 [2] -0.26805204055547044 0.4079491336377279

example float64 RNN_RELU
in x float64 [2, 1, 3] -0.62 -0.96 0.6 0.64 0.49 -0.02
in h float64 [1, 1, 2] 0.83 -0.74
in a float64 [2, 3] -0.96 -0.06 0.31 0.49 -0.8 -0.3
in b float64 [2, 2] 0.7 -0.65 0.99 0.76
in p float64 [2] 0 0.75
in q float64 [2] -0.37 0.58
in g float64 [2, 1, 2] 0.71 0.79 0.32 -0.56
in dsh float64 [1, 1, 2] 0.6 0.63
op rnn Input=x PreState=h WeightList=a,b,p,q -> Out=o State=sh DropoutState=d Reserve=r
attr mode STRING "RNN_RELU"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
op rnn_grad Input=x PreState=h WeightList=a,b,p,q Out=o DropoutState=d Reserve=r Out@GRAD=g
  State@GRAD=dsh -> Input@GRAD=dx WeightList@GRAD=da,db,dp,dq PreState@GRAD=dh
attr mode STRING "RNN_RELU"
attr hidden_size INT 2
attr input_size INT 3
attr num_layers INT 1
attr is_bidirec BOOLEAN false
attr is_test BOOLEAN false
attr dropout_prob FLOAT 0
attr seed INT 0
out dx float64 [2, 1, 3] -0.3349599999999999 -0.721318 -0.011376999999999998 0.034299999999999976
  -0.055999999999999966 -0.020999999999999984
out da float64 [2, 3] -0.48316599999999993 -0.7481279999999999 0.4675799999999999
  -0.47798399999999996 -0.775172 0.50452
out db float64 [2, 2] 0.6468189999999999 -0.5766819999999999 0.8070119999999998 -0.49282300000000007
out dp float64 [2] 0.7792999999999999 0.9131999999999999
out dq float64 [2] 0.7792999999999999 0.9131999999999999
)")
