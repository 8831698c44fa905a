// Wrong: the match flag is not registered.
module TopModule (
  input  logic       clk,
  input  logic       areset,
  input  logic       valid,
  input  logic       bit_in,
  output logic       found,
  output logic [3:0] hits
);

  logic [1:0] state;
  wire        last = valid && bit_in && (state == 2'd3);

  assign found = last && !areset;

  always_ff @(posedge clk or posedge areset) begin
    if (areset) begin
      state <= 2'd0;
      hits <= 4'd0;
    end else if (valid) begin
      if (last) hits <= hits + 4'd1;
      case (state)
        2'd0:    state <= bit_in ? 2'd1 : 2'd0;
        2'd1:    state <= bit_in ? 2'd2 : 2'd0;
        2'd2:    state <= bit_in ? 2'd2 : 2'd3;
        default: state <= bit_in ? 2'd1 : 2'd0;
      endcase
    end
  end

endmodule
