// bias: what W's bias row adds to 4 columns; nothing where it has none.
#if W_BIAS_ROW >= 0
vec4 biasOf(int n) { return W_fetch(W_layer(W_BIAS_ROW), W_base(W_BIAS_ROW), n); }
#else
vec4 biasOf(int n) { return vec4(0.); }
#endif
