// Wrong: a held start is accepted at the edge that ends the stop bit.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       start,
  input  logic [7:0] data,
  input  logic [1:0] parity_mode,
  output logic       tx,
  output logic       busy
);

  logic [10:0] frame;
  logic [3:0]  bits_left;
  logic [1:0]  tick;

  wire parity = (parity_mode == 2'd1) ? ~^data : (parity_mode == 2'd2) ? ^data : 1'b1;

  assign tx = frame[0];
  assign busy = (bits_left != 4'd0);

  always_ff @(posedge clk) begin
    if (reset) begin
      frame <= 11'h7ff;
      bits_left <= 4'd0;
      tick <= 2'd0;
    end else if (!busy || (bits_left == 4'd1 && tick == 2'd3 && start)) begin
      if (start) begin
        frame <= {1'b1, parity, data, 1'b0};
        bits_left <= (parity_mode == 2'd0) ? 4'd10 : 4'd11;
        tick <= 2'd0;
      end
    end else begin
      tick <= tick + 2'd1;
      if (tick == 2'd3) begin
        frame <= {1'b1, frame[10:1]};
        bits_left <= bits_left - 4'd1;
      end
    end
  end

endmodule
