// Right: search for a code word within distance one.
module TopModule (
  input  logic [7:0] code,
  output logic [3:0] data,
  output logic       corrected,
  output logic       uncorrectable
);

  integer     v;
  logic [3:0] value;
  logic [7:0] word;
  logic [7:0] diff;
  logic       near;

  always_comb begin
    data = {code[7:5], code[3]};
    near = 1'b0;
    corrected = 1'b0;
    for (v = 0; v < 16; v = v + 1) begin
      value = v[3:0];
      word = {value[3:1], ^value[3:1], value[0], value[3] ^ value[2] ^ value[0],
              value[3] ^ value[1] ^ value[0], 1'b0};
      word[0] = ^word;
      diff = word ^ code;
      if ((diff & (diff - 8'd1)) == 8'd0) begin
        data = value;
        near = 1'b1;
        corrected = |diff;
      end
    end
    uncorrectable = ~near;
  end

endmodule
